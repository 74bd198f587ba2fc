// Prints what `require` of the given specifier gives.
console.log(JSON.stringify(Object.keys(require(process.argv[2]))))
