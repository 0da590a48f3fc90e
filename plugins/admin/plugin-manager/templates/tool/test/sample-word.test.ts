import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { Tools } from '@svc/core/contracts'
import { pluginKit, testHost, testContext } from '@svc/testing'
import plugin from '../src/index.ts'
import samples from './samples.ts'

// the kits of every plugin and every tool: manifest, generated calls, abort, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('reverses a text', async () => {
  await using host = await testHost([{ name: 'sample-word', use: plugin }])
  const tool = host.slot(Tools).get('sample_word')
  ok(tool)
  const { content } = await tool.call({ text: 'abc' }, testContext())
  equal(content[0]?.type === 'text' && content[0].text, 'cba')
})
