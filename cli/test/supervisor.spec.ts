import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { sideBySide } from '../../test/support/side-by-side.ts'

const IMPORT = /^(?:import|export) (?!type )(?:[^'";]* from )?'([^']+)'/gm

/** What a module of this package imports when it is loaded, and what those import. */
async function importsOf(file: URL, seen = new Map<string, Set<string>>()): Promise<Map<string, Set<string>>> {
  if (seen.has(file.href)) return seen
  const text = await readFile(file, 'utf8')
  const names = [...text.matchAll(IMPORT)]
    .filter(([line]) => !/^import \{( ?type [^,}]+,?)+ \}/.test(line))
    .map(([, name = '']) => name)
  seen.set(file.href, new Set(names))
  for (const name of names.filter(item => item.startsWith('.'))) await importsOf(new URL(name, file), seen)
  return seen
}

describe('the supervisor', () => {
  const it = sideBySide()
  it('loads no kernel, no oclif and nothing that a plugin needs: all of it would be waited for before the first worker', async () => {
    const imported = await importsOf(new URL('../src/serve.ts', import.meta.url))
    const foreign = new Set([...imported.values()].flatMap(names => [...names]).filter(name => !/^(\.|node:)/.test(name)))
    expect([...foreign]).to.deep.equal(['@svc/runtime'])
  })
})
