import { Args, Flags } from '@svc/cli/command'

export const SERVER_ARG = { name: Args.string({ description: 'Name of a tool server', required: true, ignoreStdin: true }) }

export const PORT_FLAG = {
  port: Flags.integer({
    summary: 'Port of the server that is asked, where several run from this home',
    helpValue: '<int>',
    min: 1,
    max: 65_535,
  }),
}
