import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { gather, pluginKit, testContext } from '@svc/testing'
import { sampleWord } from '../src/node.ts'
import samples from './samples.ts'

// the kits of every plugin and every node: manifest, waiting and resuming elsewhere, abort, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

const TASK = {
  run: { id: 'run', workflow: 'greet' },
  step: 'hello',
  node: 'hello',
  attempt: 1,
  idempotencyKey: 'run:hello',
  settings: { text: 'Hello' },
  bodies: [],
  branches: [],
  allowance: {},
}

test('appends the word to its text', async () => {
  const steps = await gather(sampleWord.run({ ...TASK, woken: { by: 'answer', data: 'world' } }, testContext()))
  deepEqual(steps, [{ type: 'output', output: 'Hello world' }])
})
