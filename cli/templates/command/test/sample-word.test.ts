import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit } from '@svc/core/testing'
import sampleWord from '../src/command.ts'
import samples from './samples.ts'

// the manifest, the command's module, leftovers: what every plugin must do
for (const one of await pluginKit(new URL('..', import.meta.url), samples)) test(one.title, one.run)

//js: /** @type {(...args: string[]) => Promise<unknown[]>} */
async function run(...args: string[]): Promise<unknown[]> {
  //js: /** @type {string[]} */
  const lines: string[] = []
  //js: /** @type {(line: string) => void} */
  const print = (line: string) => void lines.push(line)
  const nothing = () => Promise.reject(new Error('not in this test'))
  const { signal } = new AbortController()
  return [await sampleWord({ args, signal, home: '', print, note: print, setting: nothing, host: nothing }), ...lines]
}

test('counts words', async () => deepEqual(await run('one two', 'three'), [0, '3 words']))
test('says how it is used', async () => deepEqual(await run(), [2, 'usage: svc sample-word <text>...']))
