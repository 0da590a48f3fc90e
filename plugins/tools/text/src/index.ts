import { createBoundedWork, workFile } from '@svc/worker-pool'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createDecodeBase64, createEncodeBase64, createHashText } from './encode-text.ts'
import { createCalculate, createParseCsv, createQueryJson } from './data-tools.ts'
import { createDiffText, createRenderTemplate } from './diff-and-template.ts'
import { createMatchRegex } from './match-regex.ts'
import { textConfig } from './settings.ts'
import type { TextWork } from './work.ts'

export default definePlugin({
  section: 'tools.text',
  config: textConfig,
  setup(scope) {
    const { timeout_ms: timeMs, memory_mb: memoryMb } = scope.config
    const work = scope.use(createBoundedWork<TextWork>({ file: workFile('./work', import.meta.url), timeMs, memoryMb }))
    scope.add(Tools, 'query_json', createQueryJson(work))
    scope.add(Tools, 'parse_csv', createParseCsv(work))
    scope.add(Tools, 'diff_text', createDiffText(work))
    scope.add(Tools, 'match_regex', createMatchRegex(work))
    scope.add(Tools, 'render_template', createRenderTemplate(work))
    scope.add(Tools, 'calculate', createCalculate(work))
    scope.add(Tools, 'hash_text', createHashText())
    scope.add(Tools, 'encode_base64', createEncodeBase64())
    scope.add(Tools, 'decode_base64', createDecodeBase64())
  },
})

export type { TextConfig } from './settings.ts'
