import { definePlugin, defineSlot } from '@svc/core'

// The name and shape identify a slot: the other plugin need not be installed here.
/** @type {import('@svc/core').SlotToken<{ readonly language: string, greet(name: string, ctx: import('@svc/core').CallContext): Promise<string> }>} */
const Greetings = defineSlot('greetings', { api: 1, methods: { greet: 'call' } })

export default definePlugin({
  setup(scope) {
    scope.add(Greetings, 'fr', { language: 'Français', greet: async name => `Bonjour ${name}` })
  },
})
