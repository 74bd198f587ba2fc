// Prints what `require` of each given specifier gives.
const given = process.argv.slice(2).map((name) => [name, Object.keys(require(name))])
console.log(JSON.stringify(Object.fromEntries(given)))
