import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import samples from './samples.js'

for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)
