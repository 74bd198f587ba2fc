import { describe } from 'vitest'
import { needs } from '../support/needs.ts'
import { useServers } from './on-servers.ts'
import { testUse } from './use-cases.ts'

const { onBullmq, onPgBoss, removeFromRedis } = useServers()

describe('on BullMQ', needs('Redis'), () => {
  testUse({
    open: (name, onError) => onBullmq(name, { onError }),
    remove: removeFromRedis,
    refusesAtOnce: false,
    names: ['orders-inbox', 'o\'r"d é*{x} %', 'o\u0000d', '__proto__'],
  })
})

describe('on pg-boss', needs('PostgreSQL'), () => {
  testUse({
    open: (name, onError) => onPgBoss(name, { onError }),
    refusesAtOnce: false,
    names: ['orders-inbox', 'orders.dead/letters'],
  })
})
