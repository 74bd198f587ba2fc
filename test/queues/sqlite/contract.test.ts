import { testDurableQueue, testQueue } from '../../contracts/queue.ts'
import { sqliteQueueHere, testedSqliteQueue } from '../../support/sqlite.ts'

testQueue('a SQLite file', () => testedSqliteQueue())
testDurableQueue('a SQLite file', () => testedSqliteQueue())

if (process.env.COVERAGE !== undefined) {
  // What is measured of the tests does not see into other threads.
  testQueue('a SQLite file in this thread', () => testedSqliteQueue(sqliteQueueHere))
  testDurableQueue('a SQLite file in this thread', () => testedSqliteQueue(sqliteQueueHere))
}
