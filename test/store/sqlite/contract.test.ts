import { testQueue } from '../../contracts/queue.ts'
import { testedSqliteQueue } from '../../support/sqlite.ts'

testQueue('a SQLite file', () => testedSqliteQueue())
