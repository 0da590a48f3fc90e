import { usageError } from '@svc/cli/command'
import { nearest, type SvcError, svcError } from '@svc/core'

export const nothingToSay = (): SvcError =>
  usageError('MESSAGE_MISSING', 'there is no message: neither an argument nor anything on the standard input', {
    mend: 'write `svc chat "your question"`',
  })

const nearOf = (name: string, known: readonly string[], rest: string) => {
  const near = nearest(name, known)
  return near === undefined ? rest : `did you mean "${near}"? ${rest}`
}

export const toolUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('TOOL_UNKNOWN', `there is no tool "${name}"`, { mend: nearOf(name, known, '`svc tools list` shows what there is') })

/** The same where no server was asked: a host of its own has the tools of its plugins alone. */
export const toolUnknownHere = (name: string, known: readonly string[]): SvcError =>
  nearest(name, known) === undefined
    ? usageError('TOOL_UNKNOWN', `there is no tool "${name}" in a host of its own`, {
        mend: '`svc tools list` shows what there is; tools of MCP servers are there only in a server that runs (svc serve), not here',
      })
    : toolUnknown(name, known)

export const categoryUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('CATEGORY_UNKNOWN', `no tool is of the category "${name}"`, {
    mend: known.length > 0 ? `one of: ${known.join(', ')}` : 'there are no tools at all',
  })

export const providerUnknown = (name: string, known: readonly string[]): SvcError =>
  usageError('PROVIDER_UNKNOWN', `there is no provider "${name}"`, {
    mend: known.length > 0 ? `one of: ${known.join(', ')}` : 'configure one: providers: { local: {} }',
  })

export const argumentsInvalid = (message: string, mend: string): SvcError =>
  usageError('TOOL_ARGUMENTS_INVALID', message, { mend })

export const answeredByAnother = (provider: string, model: string): SvcError =>
  svcError('PROVIDER_ERROR', `${provider}/${model} answered in its stead`)

export const streamBroken = (url: string): SvcError =>
  svcError('STREAM_BROKEN', 'the server closed the stream before the end of the reply', {
    where: url,
    mend: 'what arrived is shown; ask again',
  })

export const slashUnknown = (command: string, near: string | undefined): SvcError =>
  svcError('COMMAND_UNKNOWN', `there is no /${command.slice(0, 40)}`, {
    mend: `${near === undefined ? '' : `did you mean "/${near}"? `}/help lists what there is; begin with // to say it to the model`,
  })
