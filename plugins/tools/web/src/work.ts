// What the worker processes of this plugin are started with: no @svc/core here, and each library at its first use.
import { serveWork } from '@svc/worker-pool/child'
import { readPage } from './work/page.ts'

const work = serveWork({ read_page: readPage })

export type WebWork = typeof work
