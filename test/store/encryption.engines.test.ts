import { describe } from 'vitest'
import { needs } from '../support/needs.ts'
import { testEncryption } from './encrypted-cases.ts'
import { useServers } from './on-servers.ts'

const { onBullmq, onPgBoss, readFromRedis, readFromPostgres, removeFromRedis } = useServers()

describe('an encrypted queue on BullMQ', needs('Redis'), () => {
  testEncryption({ open: onBullmq, read: readFromRedis, remove: removeFromRedis, rewritesLog: false })
})

describe('an encrypted queue on pg-boss', needs('PostgreSQL'), () => {
  testEncryption({ open: onPgBoss, read: readFromPostgres, inbox: { transactional: true }, rewritesLog: true })
})
