import { definePlugin } from '@svc/core'

export default definePlugin({
  setup() {
    throw new Error('this plugin never starts: /etc/secret')
  },
})
