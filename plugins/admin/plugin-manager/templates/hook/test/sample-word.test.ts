import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import { sampleWord } from '../src/hook.ts'
import samples from './samples.ts'

// the kit of every plugin: manifest, declared hooks, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

const CALL = { conversationId: 'c', tool: 'write_file', callId: '1', arguments: {}, category: 'files', mode: 'act' }

test('asks before a tool writes', () => {
  equal(sampleWord({ ...CALL, effects: ['write'] })?.verdict, 'ask')
  equal(sampleWord({ ...CALL, effects: ['read'] }), undefined)
})
