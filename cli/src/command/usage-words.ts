import { messageOf } from '@svc/core'

/** What oclif found wrong with a command line, without what it adds for its own page. */
export const usageWords = (error: unknown): string =>
  messageOf(error)
    .replace(/^Parsing (--\S+) \n\t/, '$1: ')
    .replace(/\nSee more help with --help$/, '')
