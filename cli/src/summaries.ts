/** The commands of svc by their id, with the line that help shows. */
export const SUMMARIES = {
  autocomplete: 'Set up completion in your shell',
  'config:check': 'Check the configuration and report everything that is wrong',
  'config:schema': 'Write a JSON Schema of the configuration, for editors',
  'config:show': 'Show each value of the configuration and where it comes from',
  'plugins:top': 'Show the usage of each plugin: calls, errors, time, memory, CPU',
  'mcp:serve': 'Run the tool server (MCP) alone, on a port or over standard input and output',
  reload: 'Reload the server: code, plugins, configuration, without a gap',
  serve: 'Run the server',
  status: 'Show how the server is: requests, times, providers, plugins',
} as const

/** The command of `@oclif/plugin-autocomplete`. */
export const COMPLETION = 'autocomplete'

export const DESCRIPTION = 'A plugin host for agent services'

export const TOPICS: Readonly<Record<string, string>> = {
  config: 'Look at the configuration',
  mcp: 'Serve tools, and use those of other servers (MCP)',
}

/** Installs and writes plugins: its commands are found without any configuration, because they must work where that is broken. */
export const MANAGER = '@svc/plugin-manager'

/** Topics that have commands of svc and of plugins. */
const SHARED = ['mcp', 'plugins']
const wordsOf = (id: string) => id.split(':')

/** What svc's own commands begin with: a first word, or two of a topic that is shared; and what oclif's programs have. */
const OWN_WORDS: readonly string[] = [
  ...new Set(Object.keys(SUMMARIES).map(id => (SHARED.includes(wordsOf(id)[0]!) ? wordsOf(id).join(' ') : wordsOf(id)[0]!))),
  'help',
  'version',
]

/** What commands of other plugins must not begin with, and the plugin that may. */
export const RESERVED_WORDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(OWN_WORDS.map(words => [words, 'svc'])),
  build: MANAGER,
  doctor: MANAGER,
  plugins: MANAGER,
  chat: '@svc/plugin-chat',
  providers: '@svc/plugin-chat',
  tools: '@svc/plugin-chat',
}

/** Whether a command of these words is there without any configuration: of svc itself, or of `MANAGER`. */
export const isOwn = (words: readonly string[]): boolean => ['svc', MANAGER].includes(reservedFor(words) ?? '')

/** For which plugin a command of these words is reserved, or for svc itself. */
export const reservedFor = ([first = '', second = '']: readonly string[]): string | undefined =>
  [`${first} ${second}`, first].flatMap(words => (Object.hasOwn(RESERVED_WORDS, words) ? [RESERVED_WORDS[words]] : []))[0]
