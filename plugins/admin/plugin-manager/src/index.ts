import { definePlugin } from '@svc/core'

/** Adds commands alone: a server does not load it. */
export default definePlugin({ setup() {} })
