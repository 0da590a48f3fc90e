import { definePlugin } from '@svc/core'

/** The command stands in the manifest, so that help runs nothing; in a server there is nothing to do. */
export default definePlugin({ setup() {} })
