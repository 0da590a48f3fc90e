import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import samples from './samples.ts'

// the kits of every plugin, page and route: manifest, files of the page, generated requests, samples, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)
