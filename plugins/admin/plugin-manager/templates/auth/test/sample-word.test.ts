import { rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { pluginKit, testContext } from '@svc/testing'
import { createSampleWord } from '../src/scheme.ts'
import samples from './samples.ts'

// the kits of every plugin and every scheme: manifest, changed and endless credentials, abort, leftovers
for (const one of await pluginKit(new URL('..', import.meta.url), samples)) test(one.title, one.run)

test('fails before the server listens if there is no key', async () => {
  await rejects(async () => createSampleWord('').prepare?.(testContext()), { code: 'SAMPLE_WORD_KEY_MISSING' })
})
