import { describe } from 'vitest'
import { adapterContract } from '../contracts/adapter.ts'
import { bufferedHosts, hosts } from '../support/hosts.ts'

for (const host of [...hosts, ...bufferedHosts]) describe(host.name, () => adapterContract(host))
