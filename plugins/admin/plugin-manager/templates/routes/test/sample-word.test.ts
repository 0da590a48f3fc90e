import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import samples from './samples.ts'

// the manifest, made-up requests, its own samples, leftovers: what every plugin and every route must do
for (const one of await pluginKit(new URL('..', import.meta.url), samples)) test(one.title, one.run)
