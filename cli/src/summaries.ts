/** The commands of svc by their id, with the line that help shows. */
export const SUMMARIES = {
  autocomplete: 'Set up completion in your shell',
  build: 'Write a folder that holds svc with exactly these plugins',
  'config:check': 'Check the configuration and report everything that is wrong',
  'config:schema': 'Write a JSON Schema of the configuration, for editors',
  'config:show': 'Show each value of the configuration and where it comes from',
  doctor: 'Check what svc needs: home, configuration, store, providers, port',
  plugins: 'Show the plugins: order, times, what each added',
  'plugins:dev': 'Serve with a plugin that you write, and reload when a file of it is saved',
  'plugins:lint': 'Look for what would trip somebody who installs the plugin',
  'plugins:new': 'Make a plugin: a small package that passes its kit',
  'plugins:publish': 'Lint, test, show what npm would send, and publish',
  'plugins:test': 'Run the kit of a plugin, without a test being written',
  'plugins:disable': 'Switch installed plugins off',
  'plugins:doctor': 'Check the installed plugins: lock, files, sandbox, npm',
  'plugins:enable': 'Switch installed plugins on again',
  'plugins:info': 'Show an installed plugin: origin, permissions, health',
  'plugins:install': 'Install plugins: a package, folder, tarball or bundle',
  'plugins:link': 'Use a plugin where it lies, while you work on it',
  'plugins:list': 'List the plugins: where each came from, and how it is',
  'plugins:pack': 'Write all installed plugins into one file',
  'plugins:search': 'Search the registry for plugins',
  'plugins:top': 'Show what plugins take: calls, errors, time, memory, processor time',
  'plugins:uninstall': 'Take installed plugins out',
  'plugins:update': 'Update installed plugins',
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
  plugins: 'Install, look after and write plugins',
}

/** Topics that have commands of svc and of plugins. */
const SHARED = ['mcp']
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
  chat: '@svc/plugin-chat',
  providers: '@svc/plugin-chat',
  tools: '@svc/plugin-chat',
}

/** Whether a command of these words belongs to svc itself, so that no plugin can take it. */
export const isOwn = (words: readonly string[]): boolean => reservedFor(words) === 'svc'

/** For which plugin a command of these words is reserved, or for svc itself. */
export const reservedFor = ([first = '', second = '']: readonly string[]): string | undefined =>
  [first, `${first} ${second}`].flatMap(words => (Object.hasOwn(RESERVED_WORDS, words) ? [RESERVED_WORDS[words]] : []))[0]
