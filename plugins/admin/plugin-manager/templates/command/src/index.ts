import { definePlugin } from '@svc/core'

/** The manifest names the command. A server has nothing to set up. */
export default definePlugin({ setup() {} })
