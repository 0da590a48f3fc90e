import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import samples from './samples.ts'

// the kits of every plugin and every route: manifest, generated requests, samples, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)
