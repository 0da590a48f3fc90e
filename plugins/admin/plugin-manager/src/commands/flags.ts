import { Args, Flags } from '@svc/cli/command'

/** Flags of the commands that add or replace plugins. */
export const changeFlags = {
  yes: Flags.boolean({ char: 'y', summary: 'Accept all permissions without a question' }),
  'dry-run': Flags.boolean({ summary: 'Show the changes without making them' }),
  trust: Flags.boolean({ summary: 'Allow code that runs in the process of svc without isolation' }),
  isolation: Flags.option({
    summary: 'Where the code runs; default: process, or what the plugin supports',
    options: ['process', 'in-process', 'quickjs'] as const,
  })(),
}

export const offlineFlag = { offline: Flags.boolean({ summary: 'Use only the cache of npm' }) }

export const placeFlags = {
  config: Flags.string({
    char: 'c',
    summary: 'Configuration for the trial start when no server runs',
    helpValue: '<file>',
  }),
  json: Flags.boolean({ summary: 'Print one JSON object' }),
}

/** Flags of the commands that add nothing and ask no question. Scripts may pass --yes to each command. */
export const unaskedFlags = {
  yes: Flags.boolean({ char: 'y', summary: 'Has no effect: this command asks no question' }),
  ...placeFlags,
}

export const namesArg = Args.string({
  description: 'Names of installed plugins',
  required: true,
  multiple: true,
  ignoreStdin: true,
})
