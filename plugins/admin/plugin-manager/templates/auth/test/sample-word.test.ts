import { rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit, testContext } from '@svc/testing'
import { createSampleWord } from '../src/scheme.ts'
import samples from './samples.ts'

// the kits of every plugin and every scheme: manifest, changed and endless credentials, abort, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('fails before the server listens if there is no key', async () => {
  await rejects(async () => createSampleWord('').prepare?.(testContext()), { code: 'SAMPLE_WORD_KEY_MISSING' })
})
