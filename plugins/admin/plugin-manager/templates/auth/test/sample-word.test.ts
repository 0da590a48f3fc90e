import { rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit, testContext } from '@svc/testing'
import { createSampleWord } from '../src/scheme.ts'
import samples from './samples.ts'

// the manifest, changed and endless credentials, abort, leftovers: what every plugin and every scheme must do
for (const one of await pluginKit(new URL('..', import.meta.url), samples)) test(one.title, one.run)

test('says before the server opens that it has no key', async () => {
  await rejects(async () => createSampleWord('').prepare?.(testContext()), { code: 'SAMPLE_WORD_KEY_MISSING' })
})
