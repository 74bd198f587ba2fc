import { describe } from 'vitest'
import { adapterContract } from '../contracts/adapter.ts'
import { hosts } from '../support/hosts.ts'

for (const host of hosts) describe(host.name, () => adapterContract(host))
