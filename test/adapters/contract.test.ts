import { describe } from 'vitest'
import { adapterContract } from '../contracts/adapter.ts'
import { bufferedHosts, hosts } from '../support/hosts.ts'

for (const [turn, host] of [...hosts, ...bufferedHosts].entries())
  describe(host.name, () => adapterContract(host, turn))
