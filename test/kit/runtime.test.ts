import { expect, onTestFinished, test, vi } from 'vitest'
import { requireNode } from '../../src/kit/runtime.ts'

test('sending says which Node it needs', () => {
  expect(() => requireNode({ ...process.versions, node: '22.9.0' })).toThrow('22.9.0')
  expect(() => requireNode({ ...process.versions, node: '22.19.0' })).not.toThrow()
  expect(() => requireNode({ ...process.versions, node: '20.0.0', bun: '1.3.0' })).not.toThrow()

  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
  onTestFinished(() => void vi.unstubAllGlobals())
  expect(() => requireNode({ ...process.versions, node: '20.0.0' })).not.toThrow()
})

test('and says so when it is loaded, before undici', async () => {
  const path = '../../src/kit/runtime.ts?older' // Another copy of the module.
  const compare = vi.spyOn(String.prototype, 'localeCompare').mockReturnValue(-1)
  onTestFinished(() => compare.mockRestore())
  await expect(import(path)).rejects.toThrow(process.versions.node)
})
