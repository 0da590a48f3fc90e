import { svcError } from '@svc/core'

// an import of node:http reads all its names, and that loads undici: a tenth of a start
const { STATUS_CODES } = process.getBuiltinModule('node:http')

export const searchIncomplete = (key: string) =>
  svcError('CONFIG_INVALID', `tools.web.search.${key} is missing for this type, or is no URL`, {
    where: `tools.web.search.${key}`,
    hint: `write tools.web.search.${key}`,
  })

export const pageStatus = (url: string, status: number) =>
  svcError('PAGE_STATUS', `${url} answers with status ${status}${STATUS_CODES[status] ? ` (${STATUS_CODES[status]})` : ''}`, {
    details: { status },
    hint: 'check the address',
  })

export const pageBinary = (url: string, type: string) =>
  svcError('PAGE_BINARY', `${url} is no text but ${type || 'of an unknown type'}: only text, HTML and JSON can be read`, {
    details: { type },
    hint: 'look for a page with the same content as text',
  })

export const pageTooHard = (url: string) =>
  svcError('PAGE_UNREADABLE', `${url} cannot be turned into Markdown: its HTML is too large or nested too deeply`, {
    hint: 'ask for it with format "source"',
  })

export const searchStatus = (status: number) =>
  svcError('SEARCH_FAILED', `the search endpoint answers with status ${status}`, {
    details: { status },
    hint: status === 401 || status === 403 ? 'the operator must check its key' : 'try again later',
  })

export const searchUnreadable = () =>
  svcError('SEARCH_FAILED', 'the search endpoint answers in a form that is not known here', {
    hint: 'the operator must check tools.web.search',
  })

/** What happened on the way to the endpoint, without its address: that is the operator's. */
export const searchUnreachable = (code: string) =>
  svcError('SEARCH_FAILED', `the search endpoint cannot be asked (${code})`, {
    details: { cause: code },
    hint: 'try again later',
  })
