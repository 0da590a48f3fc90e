/** The commands of svc by their id, with the line that help shows. */
export const SUMMARIES = {
  chat: 'Chat with the service: one message, a pipe, or a conversation',
  'config:check': 'Check the configuration and report everything that is wrong',
  'config:show': 'Show each value of the configuration and where it comes from',
  plugins: 'Show the plugins: order, times, what each added',
  serve: 'Run the server',
} as const

export const DESCRIPTION = 'A plugin host for agent services'

export const TOPICS: Readonly<Record<string, { readonly description: string }>> = {
  config: { description: 'Look at the configuration' },
}

/** Whether this word belongs to svc itself, so that no plugin can take it. */
export const isOwn = (word: string): boolean => Object.keys(SUMMARIES).some(id => id === word || id.startsWith(`${word}:`))
