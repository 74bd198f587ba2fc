import { randomUUID } from 'node:crypto'
import { testMessageBatches } from '../contracts/message-batches.ts'
import { useServers } from '../store/on-servers.ts'
import { needs } from '../support/needs.ts'

const servers = useServers()
testMessageBatches('BullMQ', () => servers.onBullmq(randomUUID(), { pollMs: 50 }), needs('Redis'), false)
testMessageBatches('pg-boss', () => servers.onPgBoss(randomUUID(), { pollMs: 50 }), needs('PostgreSQL'), true)
