import { definePlugin } from '@svc/core'

/** Adds only commands: a server does not load this plugin. */
export default definePlugin({ setup() {} })
