/** The commands of svc by their id, with the line that help shows. */
export const SUMMARIES = {
  chat: 'Chat with the service: one message, a pipe, or a conversation',
  'config:check': 'Check the configuration and report everything that is wrong',
  'config:show': 'Show each value of the configuration and where it comes from',
  doctor: 'Check what svc needs: home, configuration, store, providers, port',
  plugins: 'Show the plugins: order, times, what each added',
  'mcp:serve': 'Run the tool server (MCP) alone, on a port or over standard input and output',
  'providers:list': 'List the providers: their models, what they can do, how they are',
  'providers:test': 'Try each provider, or one',
  reload: 'Reload the server: code, plugins, configuration, without a gap',
  serve: 'Run the server',
  status: 'Show how the server is: requests, times, providers, plugins',
  'tools:call': 'Run a tool',
  'tools:list': 'List the tools',
  'tools:show': 'Show what a tool does and takes',
} as const

export const DESCRIPTION = 'A plugin host for agent services'

export const TOPICS: Readonly<Record<string, { readonly description: string }>> = {
  config: { description: 'Look at the configuration' },
  mcp: { description: 'Serve tools, and use those of other servers (MCP)' },
  providers: { description: 'List and try the providers of models' },
  tools: { description: 'List, show and run tools' },
}

/** Topics that have commands of svc and of plugins. */
const SHARED = ['mcp']
const wordsOf = (id: string) => id.split(':')

/** What no plugin's command may begin with: first words of svc's own commands, or two of a topic that is shared. */
export const OWN_WORDS: readonly string[] = [
  ...new Set(Object.keys(SUMMARIES).map(id => (SHARED.includes(wordsOf(id)[0]!) ? wordsOf(id).join(' ') : wordsOf(id)[0]!))),
]

/** Whether a command of these words belongs to svc itself, so that no plugin can take it. */
export const isOwn = ([first = '', second = '']: readonly string[]): boolean =>
  OWN_WORDS.includes(first) || OWN_WORDS.includes(`${first} ${second}`)
