import { definePlugin, startHost, systemContext } from '@svc/core'
import { Chat } from '@svc/core/contracts'

// A plugin of the program.
const polite = definePlugin({
  setup: scope => void scope.tap(Chat.hooks.turn, turn => ({ ...turn, message: `${turn.message}, please` })),
})

await using host = await startHost({
  from: [import.meta.url],
  plugins: [
    '@svc/plugin-store-memory',
    '@svc/plugin-conversations',
    '@svc/plugin-selection',
    '@svc/plugin-modes',
    '@svc/plugin-chat',
    '@svc/plugin-model-calls',
    '@svc/plugin-provider-local',
    { name: 'polite', use: polite },
  ],
  config: { providers: { local: {} } },
})

const ctx = systemContext(AbortSignal.timeout(10_000), 'embed')
for await (const event of host.service(Chat).stream({ message: process.argv[2] ?? 'Tell me something' }, ctx)) {
  if (event.type === 'token') process.stdout.write(event.content)
}
process.stdout.write('\n')
