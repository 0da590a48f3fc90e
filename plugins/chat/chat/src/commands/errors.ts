import { usageError } from '@svc/cli/command'
import { nearest, type SvcError, svcError } from '@svc/core'

export const nothingToSay = (): SvcError =>
  usageError('MESSAGE_MISSING', 'there is no message: neither an argument nor anything on the standard input', {
    hint: 'write `svc chat "your question"`',
  })

const nearOf = (name: string, known: readonly string[], rest: string) => {
  const near = nearest(name, known)
  return near === undefined ? rest : `did you mean "${near}"? ${rest}`
}

export const toolUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('TOOL_UNKNOWN', `there is no tool "${name}"`, { hint: nearOf(name, known, '`svc tools list` shows what there is') })

/** The same where no server was asked: a host of its own has the tools of its plugins alone. */
export const toolUnknownHere = (name: string, known: readonly string[]): SvcError =>
  nearest(name, known) === undefined
    ? usageError('TOOL_UNKNOWN', `there is no tool "${name}" in a host of its own`, {
        hint: '`svc tools list` shows what there is; tools of MCP servers are there only in a server that runs (svc serve), not here',
      })
    : toolUnknown(name, known)

export const categoryUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('CATEGORY_UNKNOWN', `no tool is of the category "${name}"`, {
    hint: known.length > 0 ? `one of: ${known.join(', ')}` : 'there are no tools at all',
  })

export const providerUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('PROVIDER_UNKNOWN', `there is no provider "${name}"`, {
    hint: known.length > 0 ? `one of: ${known.join(', ')}` : 'configure one: providers: { local: {} }',
  })

export const argumentsInvalid = (message: string, hint: string): SvcError =>
  usageError('TOOL_ARGUMENTS_INVALID', message, { hint })

export const answeredByAnother = (provider: string, model: string): SvcError =>
  svcError('PROVIDER_ERROR', `${provider}/${model} answered in its stead`)

export const streamBroken = (url: string): SvcError =>
  svcError('STREAM_BROKEN', 'the server closed the stream before the end of the reply', {
    where: url,
    hint: 'what arrived is shown; ask again',
  })

export const slashUnknown = (command: string, near: string | undefined): SvcError =>
  svcError('COMMAND_UNKNOWN', `there is no /${command.slice(0, 40)}`, {
    hint: `${near === undefined ? '' : `did you mean "/${near}"? `}/help lists what there is; begin with // to say it to the model`,
  })
