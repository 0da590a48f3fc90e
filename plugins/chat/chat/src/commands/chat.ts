import { svcError } from '@svc/core'
import { Args, Flags, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'

export class ChatCommand extends SvcCommand {
  static override summary = 'Send one message, read a message from a pipe, or chat on the terminal'
  static override description =
    'Chats with the running server of this svc home, or with the server of --url or --port. If no server runs, the command starts a host in its own process. ' +
    'Without a message, the command reads a message from a pipe, or starts a conversation on the terminal. ' +
    'In a conversation, /help shows the commands, the arrow keys recall earlier lines, and Ctrl-D ends. The svc home keeps the lines, except those that begin with a blank. ' +
    'The reply goes to the standard output. Tool calls and other notes go to the standard error stream. ' +
    'On a terminal, the command asks you before a tool call that requires approval. Without a terminal, and with --json, it denies the call. ' +
    'Ctrl-C aborts a turn. Ctrl-C at the prompt, or a second Ctrl-C, ends the chat. ' +
    'Exits with 1 if the turn fails, with 2 without a message, and with 130 after an interrupt. ' +
    'The command sends SVC_API_KEY (an API key or a token of `svc tokens create`) if it is set.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> "What time is it?"',
    'echo "Sum this up" | <%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --provider local --model local-small "Hello" --json',
    '<%= config.bin %> <%= command.id %> --tools read_file,list_directory "What is in README.md?"',
    '<%= config.bin %> <%= command.id %> --url http://127.0.0.1:9000 "Hello"',
    '<%= config.bin %> <%= command.id %> --mode plan',
  ]
  // with `ignoreStdin` unset, the parser waits 10 ms for the input and then loses it
  static override args = { message: Args.string({ description: 'Message to send', ignoreStdin: true }) }
  static override flags = {
    json: Flags.boolean({ summary: 'Print each event of POST /api/v1/chat/stream as a line of JSON' }),
    provider: Flags.string({ summary: 'Provider that answers', helpValue: '<name>' }),
    model: Flags.string({ summary: 'Model that answers', helpValue: '<name>' }),
    conversation: Flags.string({ summary: 'Conversation to continue', helpValue: '<id>' }),
    temperature: Flags.custom<number>({
      summary: 'Temperature from 0 to 1',
      helpValue: '<number>',
      parse: async word => numberOf(word),
    })(),
    'max-tokens': Flags.integer({ summary: 'Maximum tokens in the reply', helpValue: '<int>' }),
    tools: Flags.custom<string[]>({
      summary: 'Tools that the model can call; "" for none',
      helpValue: '<a,b>',
      parse: async word => namesOf(word),
    })(),
    ...SERVER_FLAGS,
    profile: Flags.string({ summary: 'Profile; starts a host in this process', helpValue: '<name>', exclusive: ['url', 'port'] }),
    mode: Flags.string({ summary: 'Mode; starts a host in this process', helpValue: '<mode>', exclusive: ['url', 'port'] }),
    debug: Flags.boolean({ summary: 'Write the log of the host to the standard error stream' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ChatCommand)
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
