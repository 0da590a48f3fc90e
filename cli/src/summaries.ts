/** The commands of svc itself by their ids, with the line that help shows. */
export const SUMMARIES = {
  autocomplete: 'Set up completion in your shell',
  drain: 'Stop the server without a failed request, behind a load balancer',
  'mcp:serve': 'Run only the tool server (MCP), on a port or over standard input and output',
  reload: 'Reload code, plugins and configuration of the server without dropping requests',
  serve: 'Run the server',
} as const

/** The command of `@oclif/plugin-autocomplete`. */
export const COMPLETION = 'autocomplete'

export const DESCRIPTION = 'A plugin host for agent services'

export const TOPICS: Readonly<Record<string, string>> = { mcp: 'Serve tools, and use tools of other servers (MCP)' }

/** The plugin with the commands for plugins, configuration and servers. svc finds it without a configuration, because they must work when that is broken. */
export const MANAGER = '@svc/plugin-manager'

/** Topics with commands of svc and of plugins. */
const SHARED = ['mcp']
const wordsOf = (id: string) => id.split(':')

/**
 * The words that svc's own commands begin with: the first word, or two words in a shared topic. Also the commands that oclif
 * adds.
 */
const OWN_WORDS: readonly string[] = [
  ...new Set(Object.keys(SUMMARIES).map(id => (SHARED.includes(wordsOf(id)[0]!) ? wordsOf(id).join(' ') : wordsOf(id)[0]!))),
  'help',
  'version',
]

/** Words that are reserved for the commands of one plugin, and the name of that plugin or 'svc'. */
export const RESERVED_WORDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(OWN_WORDS.map(words => [words, 'svc'])),
  ...Object.fromEntries(['build', 'config', 'doctor', 'plugins', 'status'].map(word => [word, MANAGER])),
  acp: '@svc/plugin-acp',
  chat: '@svc/plugin-chat',
  connect: '@svc/plugin-connect',
  console: '@svc/plugin-console',
  conversations: '@svc/plugin-conversations',
  eval: '@svc/plugin-evaluations',
  nodes: '@svc/plugin-admin-api',
  providers: '@svc/plugin-chat',
  tools: '@svc/plugin-chat',
}

/** Whether these words name a command that needs no configuration: one of svc itself, or of `MANAGER`. */
export const isOwn = (words: readonly string[]): boolean => ['svc', MANAGER].includes(reservedFor(words) ?? '')

/** The plugin that a command of these words is reserved for, or 'svc'. */
export const reservedFor = ([first = '', second = '']: readonly string[]): string | undefined =>
  [`${first} ${second}`, first].flatMap(words => (Object.hasOwn(RESERVED_WORDS, words) ? [RESERVED_WORDS[words]] : []))[0]
