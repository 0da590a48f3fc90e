import { usageError } from '@svc/cli/command'
import { nearest, type SvcError, svcError } from '@svc/core'

export const nothingToSay = (): SvcError =>
  usageError('MESSAGE_MISSING', 'the message is missing: pass it as an argument or on the standard input', {
    hint: 'Run `svc chat "your question"`',
  })

const nearOf = (name: string, known: readonly string[], rest: string) => {
  const near = nearest(name, known)
  return near === undefined ? rest : `Did you mean "${near}"? ${rest}`
}

export const toolUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('TOOL_UNKNOWN', `there is no tool "${name}"`, {
    hint: nearOf(name, known, 'Run `svc tools list` to show the tools'),
  })

/** For a host in this process: it has only the tools of its plugins. */
export const toolUnknownHere = (name: string, known: readonly string[]): SvcError =>
  nearest(name, known) === undefined
    ? usageError('TOOL_UNKNOWN', `there is no tool "${name}" in the host of this process`, {
        hint: 'Run `svc tools list` to show the tools. Only a running server (`svc serve`) has the tools of MCP servers',
      })
    : toolUnknown(name, known)

export const categoryUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('CATEGORY_UNKNOWN', `there is no tool of the category "${name}"`, {
    hint: known.length > 0 ? `Use one of: ${known.join(', ')}` : 'Install or configure a tool plugin first: there are no tools',
  })

export const providerUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('PROVIDER_UNKNOWN', `there is no provider "${name}"`, {
    hint: known.length > 0 ? `Use one of: ${known.join(', ')}` : 'Configure a provider, for example providers: { local: {} }',
  })

export const argumentsInvalid = (message: string, hint: string): SvcError =>
  usageError('TOOL_ARGUMENTS_INVALID', message, { hint })

export const answeredByAnother = (provider: string, model: string): SvcError =>
  svcError('PROVIDER_ERROR', `${provider}/${model} answered in place of the tested provider`)

export const streamBroken = (url: string): SvcError =>
  svcError('STREAM_BROKEN', 'the server closed the stream before the end of the reply', {
    where: url,
    hint: 'Send the message again; the partial reply is shown above',
  })

export const slashUnknown = (command: string, near: string | undefined): SvcError =>
  svcError('COMMAND_UNKNOWN', `there is no /${command.slice(0, 40)}`, {
    hint: `${near === undefined ? '' : `Did you mean "/${near}"? `}Enter /help to list the commands. Start the line with // to send it to the model`,
  })
