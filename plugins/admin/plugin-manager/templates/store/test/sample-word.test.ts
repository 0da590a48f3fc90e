import { test } from 'node:test'
import { pluginKit } from '@svc/testing'
import samples from './samples.ts'

// the manifest, leftovers, and all that svc expects of a store: ranges, batches, logs, leases, counts, watches
for (const one of await pluginKit(new URL('..', import.meta.url), samples)) test(one.title, one.run)
