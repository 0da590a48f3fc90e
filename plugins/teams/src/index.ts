import { definePlugin } from '@svc/core'

export default definePlugin({ setup() {} })
