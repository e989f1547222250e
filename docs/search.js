// Sphinx's search: pages for readers stand before those of the package's names. (Scores: a term of the glossary up to 100, titles 15.)
var Scorer = {
  score: ([page, , , , score]) => (page.startsWith("api") ? score - 50 : score),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
}
