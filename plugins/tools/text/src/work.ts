// What the worker processes of this plugin are started with: no @svc/core here, and each library at its first use.
import { serveWork } from '@svc/worker-pool/child'
import { calculate } from './work/calculate.ts'
import { parseCsv } from './work/csv.ts'
import { diffText } from './work/diff.ts'
import { queryJson } from './work/query.ts'
import { matchRegex } from './work/regex.ts'
import { renderTemplate } from './work/template.ts'

const work = serveWork({
  query_json: queryJson,
  parse_csv: parseCsv,
  diff_text: diffText,
  match_regex: matchRegex,
  render_template: renderTemplate,
  calculate,
})

export type TextWork = typeof work
