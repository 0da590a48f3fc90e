import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const PREFIX = 'fixture__'

/** Every tool of the server `fixture` once more, without the prefix. */
export default definePlugin({
  requires: { tools: Tools },
  setup(scope, { tools }) {
    scope.tap(Tools.changed, ({ added }) => {
      for (const name of added) if (name.startsWith(PREFIX)) scope.add(Tools, name.slice(PREFIX.length), tools.get(name)!)
    })
  },
})
