"""From files of tokens to files of tokens: .ftd, llm.c's, headerless, Megatron's."""
from ..errors import DataError
from . import formats, vocabulary
from .container import Facts, Writer


def convert(options, tokenizer, files, output):
    """Writes `output` of files [(path, format)] of tokens; returns a dict of what was written."""
    sources = [formats.read(path, form) for path, form in files]
    for source in sources:
        if source.data is not None and source.data.inputs and options.documents.name in ("ends-with", "begins-with"):
            raise DataError(f"{source.path}: --documents={options.documents.text}, and its documents have {', '.join(source.data.inputs)}, a row each", 2)
        source.lengths = without_empty(formats.split_at(source, options.documents))
    facts = facts_of(options, tokenizer, sources)
    if options.to == "ftd":
        return to_container(facts, sources, output)
    refuse_losses(options, sources)
    count = formats.write(output, options.to, sources, facts.size)
    return {"path": str(output), "kind": facts.kind, "documents": sum(len(source.lengths) for source in sources), "tokens": count, "counted": count,
            "type": options.to,
            "vocabulary_size": facts.size, "tokenizer_hash": facts.hash}


def without_empty(lengths):
    return lengths[lengths > 0]


def refuse_losses(options, sources):
    """What other formats have no place for, unless it was said to be left out."""
    for source in sources:
        if source.data is None:
            continue
        if source.data.loss_mask is not None and options.loss_on != "all":
            raise DataError(f"{source.path}: says which tokens count, for which --to={options.to} has no place; --loss-on=all leaves it out")
        if source.data.inputs and not (options.label_key == ""):
            raise DataError(f"{source.path}: has {', '.join(source.data.inputs)} beside tokens, for which --to={options.to} has no place; --label-key= leaves "
                            f"it out")


def facts_of(options, tokenizer, sources):
    """What is said of all sources together. DataError where they are of different tokenizers or kinds."""
    containers = [source.data for source in sources if source.data is not None]
    greatest = [source.greatest() for source in sources]
    hashes = {data.metadata["tokenizer_hash"] for data in containers} | ({tokenizer.hash} if tokenizer else set())
    if len(hashes - {""}) > 1:
        raise DataError(f"files of different tokenizers: their hashes are {', '.join(sorted(hashes - {''}))}")
    sizes = {int(data.metadata["vocabulary_size"]) for data in containers} | ({tokenizer.size} if tokenizer else set())
    kinds = {data.metadata["kind"] for data in containers} | ({"text"} if len(containers) < len(sources) else set())
    inputs = [{name: (array.dtype, array.shape[1:]) for name, array in data.inputs.items()} for data in containers] + [{}] * (len(sources) - len(containers))
    if len(kinds) > 1 or any(each != inputs[0] for each in inputs):
        raise DataError(f"files of different kinds ({', '.join(sorted(kinds))}), or with other inputs beside tokens, do not make one")
    size = tokenizer.size if tokenizer else max(sizes) if sizes else max(greatest) + 1
    for source, most in zip(sources, greatest):
        if most >= size:
            raise DataError(f"{source.path}: has token {most}, and the vocabulary has {size}; it is of another tokenizer, or of another format (--from=)")
    first = containers[0] if containers else None
    named = [data for data in containers if data.vocabulary is not None and data.vocabulary[2].size == size]
    ids = lambda name: getattr(tokenizer, name) if tokenizer else id_of(first, name)
    return Facts(kinds.pop(), size, (hashes - {""} or {""}).pop(), ids("bos"), ids("eos"), ids("pad"),
                 vocabulary.tensors_of(tokenizer) if tokenizer else named[0].vocabulary if named else None,
                 any(data.loss_mask is not None for data in containers) and options.loss_on != "all",
                 {name: (array_type(first, name), first.inputs[name].shape[1:]) for name in (first.inputs if first else ())})


def array_type(data, name):
    return data.dtype(f"input.{name}")


def id_of(data, name):
    value = data and data.metadata.get(f"{name}_token")
    return None if value is None else int(value)


def to_container(facts, sources, output):
    writer = Writer(output, facts)
    for source in sources:
        for begin, block in source.blocks():
            counts = source.data.counts(begin, begin + len(block)) if source.data is not None and facts.masked else None
            writer.add_tokens(block, counts)
        writer.add_documents(source.lengths, {name: source.data.inputs[name] for name in facts.inputs})
    return writer.finish()
