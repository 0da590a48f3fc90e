import { svcError } from '@svc/core'
import { Args, Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class Chat extends SvcCommand {
  static override summary = 'Chat with the service: one message, a pipe, or a conversation'
  static override description =
    'Talks to the server that runs from this svc home, to the one that --url or --port names, or, where none runs, to a host that it starts for itself and that listens nowhere. Without a message it reads one from a pipe, or talks on the terminal until Ctrl-D: /help shows what commands there are (/model, /profile, /mode, /new, /exit), the arrow keys bring back earlier lines (kept in the svc home; one that begins with a blank is not). The reply goes to the standard output, everything about it to the standard error stream, each tool call as it begins and ends. A tool that wants to be asked is asked about on a terminal; elsewhere, and with --json, it is denied and the model is told. Ctrl-C aborts a turn; at the prompt, or once more, it ends. Ends with 1 when the turn failed, with 2 without a message, with 130 when it was interrupted. SVC_API_KEY (an API key or a token of `svc tokens create`) is sent where it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> "What time is it?"',
    'echo "Sum this up" | <%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --provider local --model local-small "Hello" --json',
    '<%= config.bin %> <%= command.id %> --tools read_file,list_directory "What is in README.md?"',
    '<%= config.bin %> <%= command.id %> --url http://127.0.0.1:9000 "Hello"',
    '<%= config.bin %> <%= command.id %> --mode plan',
  ]
  // the parser would give the input 10 ms, and lose what it has read when those are over
  static override args = { message: Args.string({ description: 'What to say', ignoreStdin: true }) }
  static override flags = {
    json: Flags.boolean({ summary: 'One JSON line an event, as POST /api/v1/chat/stream sends them' }),
    provider: Flags.string({ summary: 'Provider that answers', helpValue: '<name>' }),
    model: Flags.string({ summary: 'Model that answers', helpValue: '<name>' }),
    conversation: Flags.string({ summary: 'Conversation to go on with', helpValue: '<id>' }),
    temperature: Flags.custom<number>({ summary: 'From 0 to 1', helpValue: '<number>', parse: async word => numberOf(word) })(),
    'max-tokens': Flags.integer({ summary: 'Most tokens of the reply', helpValue: '<int>' }),
    tools: Flags.custom<string[]>({
      summary: 'Tools that may be used; none with ""',
      helpValue: '<a,b>',
      parse: async word => namesOf(word),
    })(),
    ...SERVER_FLAGS,
    profile: Flags.string({ summary: 'Profile, with a host of its own', helpValue: '<name>', exclusive: ['url', 'port'] }),
    mode: Flags.string({ summary: 'Mode of working, with a host of its own', helpValue: '<mode>', exclusive: ['url', 'port'] }),
    debug: Flags.boolean({ summary: 'Log of the own host on the standard error stream' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Chat)
    const { chat } = await import('./talk/chat.ts')
    const { 'max-tokens': maxTokens, ...rest } = flags
    return chat(this, { ...rest, message: args.message, maxTokens })
  }
}

function numberOf(word: string): number {
  const value = Number(word)
  if (word.trim() === '' || Number.isNaN(value)) throw svcError('COMMAND_LINE_INVALID', `Expected a number but received: ${word}`)
  return value
}

const namesOf = (word: string) =>
  word
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
