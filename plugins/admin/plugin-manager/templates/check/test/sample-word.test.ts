import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit, testContext } from '@svc/testing'
import { createSampleWord } from '../src/check.ts'
import samples from './samples.ts'

// the kit of every plugin: manifest, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('is degraded without free memory', async () => {
  equal((await createSampleWord(() => 1e9).probe(testContext())).status, 'healthy')
  equal((await createSampleWord(() => 1e6).probe(testContext())).status, 'degraded')
})
