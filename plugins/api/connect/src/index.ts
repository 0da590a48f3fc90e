import { definePlugin } from '@svc/core'

/** Adds only a command: it asks servers through HTTP, and needs nothing of the host. */
export default definePlugin({ setup() {} })
