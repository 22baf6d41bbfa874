// The data of the report, and its columns as arrays that are quick to look through.

function readDocument() {
  const data = JSON.parse(document.getElementById('document').textContent);
  for (const plan of data.plans) {
    const {names, buffers} = plan;
    plan.title = plan.name;
    plan.text = (number) => names[number];
    for (const column of ['name', 'class', 'layer', 'space', 'persistent', 'program', 'first', 'last'])
      buffers[column] = Int32Array.from(buffers[column]);
    buffers.bytes = Float64Array.from(buffers.bytes);
    plan.bySize = d3.range(buffers.bytes.length).sort((a, b) => buffers.bytes[b] - buffers.bytes[a] || a - b);
    for (const program of plan.programs) {
      program.size = program.instructions.opcode.length;
      for (const column of ['begin', 'end', 'exposed'])
        program.instructions[column] = Float64Array.from(program.instructions[column]);
    }
  }
  return data;
}

const opcodes = {
  KERNEL: 0,
  ALL_GATHER: 1,
  REDUCE_SCATTER: 2,
  ALL_REDUCE: 3,
  WAIT: 4,
  RELEASE: 5,
  COPY: 6
};

// "12, matmul of model.layers.3, forward"
function instructionText(plan, program, number) {
  const {title, layer, phase} = plan.programs[program].instructions;
  let text = `${number}, ${plan.text(title[number])}`;
  if (plan.text(layer[number])) text += ` of ${plan.text(layer[number])}`;
  if (plan.text(phase[number])) text += `, ${plan.text(phase[number])}`;
  return text;
}

function bufferText(plan, buffer) {
  return plan.text(plan.buffers.name[buffer]) || `buffer ${buffer}`;
}

// The program that is shown first: the one with the peak, else the last of a step.
function usualProgram(plan) {
  const {program} = plan.peak.device;
  if (plan.programs[program] && plan.programs[program].runs > 0) return program;
  const last = d3.range(plan.programs.length).filter((i) => plan.programs[i].runs > 0).pop();
  return last === undefined ? 0 : last;
}
